// What every program here plays; `programs/trip.py` says it for Python, `play.py` has the models' side of it.
import assert from "node:assert/strict";

export const MODEL = "playbook";
export const FREE = "free";
export const EMBEDDED = "smollm2-135m-instruct";
export const KEY = "none";
export const HELLO = "Hello there, traveller.";
export const OSLO = "Go to Oslo: it is sunny, and two nights cost 240 euro.";
export const BERGEN = "Bergen is wet, and three nights cost 199 kroner.";
export const THOUGHT = "the weather decides";
export const PARIS = { city: "Paris", total: 100 };
export const TURIN = { city: "Turin", total: 300 };
export const HULL = { city: "Hull", total: 500 };

const WEATHER = { Oslo: "Sunny", Bergen: "rain", Turin: "Mild", Hull: "Foggy" };
const PRICE = { "Oslo 2": "240 Euro", "Bergen 3": "199 Kroner", "Turin 2": "Just 300", "Hull 1": "Dear: 500" };

// The towns are named, since a small model that is forced to call may otherwise never end a name.
export const CITIES = ["Oslo", "Bergen", "Turin", "Hull"];
export const called = [];

export function weather({ city }) {
  called.push(["weather", { city }]);
  return WEATHER[city] ?? "unknown";
}

export function price({ city, nights }) {
  called.push(["price", { city, nights }]);
  return PRICE[`${city} ${nights}`] ?? "unknown";
}

export function run(name, args) {
  return { weather, price }[name](JSON.parse(args));
}

export const OSLO_CALLS = [["weather", { city: "Oslo" }], ["price", { city: "Oslo", nights: 2 }]];
export const BERGEN_CALLS = [["weather", { city: "Bergen" }], ["price", { city: "Bergen", nights: 3 }]];
export const TURIN_CALLS = [["weather", { city: "Turin" }], ["price", { city: "Turin", nights: 2 }]];
export const HULL_CALLS = [["weather", { city: "Hull" }], ["price", { city: "Hull", nights: 1 }]];

export const same = assert.deepEqual;
export const holds = assert.ok;

/** Arguments have the members that the schema of `name` asks for. */
export function conforms(name, args) {
  same(Object.keys(args).sort(), name === "weather" ? ["city"] : ["city", "nights"]);
}

/** Runs the flows (those named behind the URL, if any), one after the other, and prints how each went. */
export async function main(flows) {
  const [url, ...wanted] = process.argv.slice(2);
  for (const [name, work] of Object.entries(flows)) {
    if (wanted.length && !wanted.includes(name)) continue;
    called.length = 0;
    let fault = null;
    try {
      await work(url);
    } catch (error) {
      console.error(error);
      fault = `${error.name}: ${error.message}`.slice(0, 600);
    }
    console.log(JSON.stringify({ flow: name, fault }));
  }
}
