// The official OpenAI client for JavaScript.
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import * as trip from "./trip.mjs";

const { same, holds } = trip;
const Trip = z.object({ city: z.string(), total: z.number().int() });
const CITY = { type: "string", enum: trip.CITIES };
const declared = (name, properties) => ({
  type: "function",
  name,
  description: `Tell the ${name}`,
  strict: true,
  parameters: { type: "object", properties, required: Object.keys(properties), additionalProperties: false },
});
const TOOLS = [declared("weather", { city: CITY }), declared("price", { city: CITY, nights: { type: "integer" } })];
const FORMAT = { format: zodTextFormat(Trip, "trip") };

const client = (url) => new OpenAI({ baseURL: url, apiKey: trip.KEY, maxRetries: 0 });
const whole = (url) => (parameters) => client(url).responses.create({ model: trip.MODEL, ...parameters });
const streamed = (url) => async (parameters) => {
  const stream = client(url).responses.stream({ model: trip.MODEL, ...parameters });
  let text = "";
  for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
  const response = await stream.finalResponse();
  same(text, said(response));
  return response;
};
const said = (response) =>
  response.output.flatMap((item) => (item.type === "message" ? item.content : [])).map((part) => part.text).join("");
const calls = (response) => response.output.filter((item) => item.type === "function_call");

async function agent(ask, question, parameters = {}) {
  const input = [{ role: "user", content: question }];
  const turns = [];
  while (turns.length < 6) {
    const response = await ask({ input, tools: TOOLS, ...parameters });
    turns.push(response);
    if (!calls(response).length) return turns;
    input.push(...response.output);
    for (const { call_id, name, arguments: args } of calls(response)) {
      input.push({ type: "function_call_output", call_id, output: trip.run(name, args) });
    }
  }
  throw new Error("no end");
}

async function both(url, question, check, parameters) {
  for (const ask of [whole(url), streamed(url)]) {
    trip.called.length = 0;
    const turns = await agent(ask, question, parameters);
    check(turns, said(turns.at(-1)));
  }
}

async function forced(url, model) {
  const named = { type: "function", name: "price" };
  for (const [choice, names] of [["required", ["weather", "price"]], [named, ["price"]]]) {
    for (const ask of [whole(url), streamed(url)]) {
      const limits = { temperature: 0, max_output_tokens: 600, parallel_tool_calls: false };
      const parameters = { tools: TOOLS, tool_choice: choice, ...limits };
      const found = calls(await ask({ model, input: "hello", ...parameters }));
      holds(found.length, "there is a call");
      for (const call of found) {
        holds(names.includes(call.name), `${call.name} was allowed`);
        trip.conforms(call.name, JSON.parse(call.arguments));
      }
    }
  }
}

await trip.main({
  async text(url) {
    const first = await whole(url)({ input: "Greet me" });
    same(first.output_text, trip.HELLO);
    const input = [{ role: "user", content: "Greet me" }, ...first.output, { role: "user", content: "Greet me" }];
    same((await whole(url)({ input })).output_text, trip.HELLO);
  },
  async stream(url) {
    same(said(await streamed(url)({ input: "Greet me" })), trip.HELLO);
  },
  async structured(url) {
    const response = await client(url).responses.parse({ model: trip.MODEL, input: "to Paris", text: FORMAT });
    same(response.output_parsed, trip.PARIS);
  },
  async tools(url) {
    await both(url, "a trip to Oslo", (turns, text) => {
      same([text, trip.called, turns.length], [trip.OSLO, trip.OSLO_CALLS, 3]);
    });
  },
  async parallel(url) {
    const check = (turns, text) => same([text, trip.called, turns.length], [trip.BERGEN, trip.BERGEN_CALLS, 2]);
    await both(url, "a trip to Bergen", check, { parallel_tool_calls: true });
    const alone = await whole(url)({ input: "to Bergen", tools: TOOLS, parallel_tool_calls: false });
    same(alone.output.map((item) => item.type), ["function_call"]);
  },
  async final(url) {
    const check = (_, text) => same([JSON.parse(text), trip.called], [trip.TURIN, trip.TURIN_CALLS]);
    await both(url, "a trip to Turin", check, { text: FORMAT });
  },
  async reasoning(url) {
    const check = (turns, text) => {
      same([text, trip.called], [trip.OSLO, trip.OSLO_CALLS]);
      for (const { output, usage } of turns) {
        same([output[0].type, output[0].content[0].text.trim()], ["reasoning", trip.THOUGHT]);
        holds(usage.output_tokens_details.reasoning_tokens > 0, "reasoning is counted");
      }
    };
    await both(url, "a trip to Oslo", check, { reasoning: { effort: "low" } });
  },
  async forced(url) {
    await forced(url, trip.FREE);
    const none = await whole(url)({ input: "Greet me", tools: TOOLS, tool_choice: "none" });
    same(said(none), trip.HELLO);
  },
  embedded: (url) => forced(url, trip.EMBEDDED),
});
