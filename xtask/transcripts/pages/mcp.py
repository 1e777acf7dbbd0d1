"""Lines for a client, and a token for an operator."""

from stage import PageStage

STAGE = PageStage(programs=("openssl",))
