// The OpenAI Agents SDK for JavaScript.
import { Agent, OpenAIResponsesModel, Runner, handoff, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import * as trip from "./trip.mjs";

const { same, holds } = trip;
setTracingDisabled(true);
const Trip = z.object({ city: z.string(), total: z.number().int() });
const City = z.object({ city: z.enum(trip.CITIES) });
const TOOLS = [
  tool({ name: "weather", description: "Tell the weather", parameters: City, execute: trip.weather }),
  tool({
    name: "price",
    description: "Tell the price of some nights",
    parameters: City.extend({ nights: z.number().int() }),
    execute: trip.price,
  }),
];

function agent(url, settings = {}) {
  const { model: name = trip.MODEL, ...others } = settings;
  const client = new OpenAI({ baseURL: url, apiKey: trip.KEY, maxRetries: 0 });
  const model = new OpenAIResponsesModel(client, name);
  return new Agent({ name: "planner", instructions: "plan trips", model, ...others });
}

const runner = new Runner({ tracingDisabled: true });
const whole = (one, question) => runner.run(one, question);
async function streamed(one, question) {
  const result = await runner.run(one, question, { stream: true });
  let events = 0;
  for await (const _ of result) events += 1;
  await result.completed;
  holds(events > 3, "a run is told in events");
  return result;
}

async function both(one, question, check) {
  for (const run of [whole, streamed]) {
    trip.called.length = 0;
    check(await run(one, question));
  }
}

const raw = (result, type) => result.newItems.filter((item) => item.type === type).map((item) => item.rawItem);

async function forced(url, model) {
  for (const [toolChoice, names] of [["required", ["weather", "price"]], ["price", ["price"]]]) {
    const modelSettings = { toolChoice, temperature: 0, maxTokens: 600, parallelToolCalls: false };
    const one = agent(url, { model, tools: TOOLS, modelSettings, toolUseBehavior: "stop_on_first_tool" });
    await both(one, "hello", (result) => {
      const calls = raw(result, "tool_call_item");
      holds(calls.length, "there is a call");
      for (const call of calls) {
        holds(names.includes(call.name), `${call.name} was allowed`);
        trip.conforms(call.name, JSON.parse(call.arguments));
      }
    });
  }
}

await trip.main({
  async text(url) {
    const first = await whole(agent(url), "Greet me");
    same(first.finalOutput, trip.HELLO);
    const again = [...first.history, { role: "user", content: "Greet me again" }];
    same((await whole(agent(url), again)).finalOutput, trip.HELLO);
  },
  async stream(url) {
    same((await streamed(agent(url), "Greet me")).finalOutput, trip.HELLO);
  },
  structured: (url) =>
    both(agent(url, { outputType: Trip }), "a trip to Paris", (result) => same(result.finalOutput, trip.PARIS)),
  tools: (url) =>
    both(agent(url, { tools: TOOLS }), "a trip to Oslo", (result) =>
      same([result.finalOutput, trip.called], [trip.OSLO, trip.OSLO_CALLS]),
    ),
  parallel: (url) =>
    both(agent(url, { tools: TOOLS, modelSettings: { parallelToolCalls: true } }), "a trip to Bergen", (result) =>
      same([result.finalOutput, trip.called, result.rawResponses.length], [trip.BERGEN, trip.BERGEN_CALLS, 2]),
    ),
  final: (url) =>
    both(agent(url, { tools: TOOLS, outputType: Trip }), "a trip to Turin", (result) =>
      same([result.finalOutput, trip.called], [trip.TURIN, trip.TURIN_CALLS]),
    ),
  reasoning: (url) =>
    both(
      agent(url, { tools: TOOLS, modelSettings: { reasoning: { effort: "low" } } }),
      "a trip to Oslo",
      (result) => {
        same([result.finalOutput, trip.called], [trip.OSLO, trip.OSLO_CALLS]);
        const thoughts = raw(result, "reasoning_item").map((item) => item.providerData.content[0].text.trim());
        same(thoughts, [trip.THOUGHT, trip.THOUGHT, trip.THOUGHT]);
      },
    ),
  async forced(url) {
    await forced(url, trip.FREE);
    const none = agent(url, { tools: TOOLS, modelSettings: { toolChoice: "none" } });
    await both(none, "Greet me", (result) => same([result.finalOutput, trip.called], [trip.HELLO, []]));
  },
  async handoff(url) {
    const quill = agent(url, { name: "Quill", instructions: "write the trip down", outputType: Trip });
    const planner = agent(url, { tools: TOOLS, handoffs: [handoff(quill, { toolNameOverride: "transfer_to_quill" })] });
    await both(planner, "a trip to Hull", (result) => {
      same([result.lastAgent.name, result.finalOutput], ["Quill", trip.HULL]);
      same(trip.called, trip.HULL_CALLS);
    });
  },
  embedded: (url) => forced(url, trip.EMBEDDED),
});
