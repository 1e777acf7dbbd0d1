"""Names of what models can do; modules only hand them on."""

TOOLS = "tools"
STREAMING = "streaming"
VISION = "vision"
