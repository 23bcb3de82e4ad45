"""b3node turns a GGUF model into a production endpoint that speaks the OpenAI Responses API."""

__version__ = "0.1.0"
