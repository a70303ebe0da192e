"""Rewrites by a language model behind any OpenAI-compatible address. Off unless configured."""
