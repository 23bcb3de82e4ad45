// The AI SDK with a provider of its own choice: `play` is given a function from URL and name to a model.
import { Output, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import * as trip from "./trip.mjs";

const { same, holds } = trip;
const Trip = z.object({ city: z.string(), total: z.number().int() });
const City = z.object({ city: z.enum(trip.CITIES) });
const TOOLS = {
  weather: tool({ description: "Tell the weather", inputSchema: City, execute: async (given) => trip.weather(given) }),
  price: tool({
    description: "Tell the price of some nights",
    inputSchema: City.extend({ nights: z.number().int() }),
    execute: async (given) => trip.price(given),
  }),
};
const FORGETFUL = { providerOptions: { openai: { store: false } } };

// One call is enough, where the provider has a word for that.
const SOBER = { providerOptions: { openai: { store: false, parallelToolCalls: false } } };

export async function play(provide, { thinking, shows }) {
  const asked = (url, question, settings) => ({
    model: provide(url, trip.MODEL),
    ...(typeof question === "string" ? { prompt: question } : { messages: question }),
    maxRetries: 0,
    stopWhen: stepCountIs(6),
    ...FORGETFUL,
    ...settings,
  });
  const whole = async (url, question, settings) => {
    const result = await generateText(asked(url, question, settings));
    return { text: result.text, steps: result.steps, messages: result.response.messages, output: () => result.output };
  };
  const streamed = async (url, question, settings) => {
    const faults = [];
    const onError = ({ error }) => faults.push(error);
    const result = streamText({ ...asked(url, question, settings), onError });
    let told = "";
    for await (const part of result.fullStream) if (part.type === "text-delta") told += part.text;
    if (faults.length) throw faults[0];
    const [text, steps, output] = [await result.text, await result.steps, settings?.output && (await result.output)];
    holds(told.endsWith(text), "the deltas are the text");
    return { text, steps, messages: (await result.response).messages, output: () => output };
  };
  const both = async (url, question, settings, check) => {
    for (const ask of [whole, streamed]) {
      trip.called.length = 0;
      check(await ask(url, question, settings));
    }
  };
  const forced = async (url, name) => {
    for (const [toolChoice, names] of [
      ["required", ["weather", "price"]],
      [{ type: "tool", toolName: "price" }, ["price"]],
    ]) {
      const limits = { temperature: 0, maxOutputTokens: 800, stopWhen: stepCountIs(1), ...SOBER };
      const settings = { model: provide(url, name), tools: TOOLS, toolChoice, ...limits };
      await both(url, "hello", settings, ({ steps }) => {
        const calls = steps[0].toolCalls;
        holds(calls.length, "there is a call");
        for (const call of calls) {
          holds(names.includes(call.toolName) && !call.invalid, `${call.toolName} was allowed`);
          trip.conforms(call.toolName, call.input);
        }
      });
    }
  };
  await trip.main({
    async text(url) {
      const first = await whole(url, "Greet me");
      same(first.text, trip.HELLO);
      const user = { role: "user", content: "Greet me" };
      same((await whole(url, [user, ...first.messages, user])).text, trip.HELLO);
    },
    async stream(url) {
      same((await streamed(url, "Greet me")).text, trip.HELLO);
    },
    structured: (url) =>
      both(url, "a trip to Paris", { output: Output.object({ schema: Trip }) }, (result) =>
        same(result.output(), trip.PARIS),
      ),
    tools: (url) =>
      both(url, "a trip to Oslo", { tools: TOOLS }, ({ text, steps }) =>
        same([text, trip.called, steps.length], [trip.OSLO, trip.OSLO_CALLS, 3]),
      ),
    parallel: (url) =>
      both(url, "a trip to Bergen", { tools: TOOLS }, ({ text, steps }) =>
        same([text, trip.called, steps.length], [trip.BERGEN, trip.BERGEN_CALLS, 2]),
      ),
    final: (url) =>
      both(url, "a trip to Turin", { tools: TOOLS, output: Output.object({ schema: Trip }) }, (result) =>
        same([result.output(), trip.called], [trip.TURIN, trip.TURIN_CALLS]),
      ),
    reasoning: (url) =>
      both(url, "a trip to Oslo", { tools: TOOLS, ...thinking }, ({ text, steps }) => {
        same([text, trip.called], [trip.OSLO, trip.OSLO_CALLS]);
        for (const step of steps) {
          if (shows) same(step.reasoningText.trim(), trip.THOUGHT);
          holds(step.usage.outputTokenDetails.reasoningTokens > 0, "reasoning is counted");
        }
      }),
    async forced(url) {
      await forced(url, trip.FREE);
      await both(url, "Greet me", { tools: TOOLS, toolChoice: "none" }, ({ text }) => same(text, trip.HELLO));
    },
    embedded: (url) => forced(url, trip.EMBEDDED),
  });
}
