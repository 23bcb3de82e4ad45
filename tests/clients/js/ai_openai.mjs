// The AI SDK with @ai-sdk/openai. It must be told to store nothing: otherwise it refers to items by their ids.
// It reads summaries alone, so that it does not show the thoughts of a model that has no other.
import { createOpenAI } from "@ai-sdk/openai";
import { play } from "./ai_sdk.mjs";
import { KEY } from "./trip.mjs";

const openai = { store: false, reasoningEffort: "low", forceReasoning: true };
await play((url, name) => createOpenAI({ baseURL: url, apiKey: KEY }).responses(name), {
  thinking: { providerOptions: { openai } },
  shows: false,
});
