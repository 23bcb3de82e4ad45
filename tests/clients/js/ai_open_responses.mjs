// The AI SDK with @ai-sdk/open-responses, which asks at one URL and shows raw thoughts.
import { createOpenResponses } from "@ai-sdk/open-responses";
import { play } from "./ai_sdk.mjs";
import { KEY } from "./trip.mjs";

const provide = (url, name) =>
  createOpenResponses({ name: "b3node", url: `${url}/responses`, apiKey: KEY })(name);
await play(provide, { thinking: { providerOptions: { b3node: { reasoningEffort: "low" } } }, shows: true });
