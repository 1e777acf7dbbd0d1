"""A declared command that gets the page's credential."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

COMMAND = """\
commands:
  deploy:
    description: Sends the key.
    argv: [echo, sent, "{key}"]
    parameters: { key: { type: string } }
rules: [allow commands.deploy]
"""

STAGE = PageStage(
    places={MAIN: PlaceStage(files={"toolpost.yaml": COMMAND, "deploy-key": "k7-the-deploy-key-of-the-project\n"})},
    blocks={
        "network:\n  credentials:": BlockStage(
            saves="network.yaml",
        ),
        "toolpost call deploy": BlockStage(
            setup="""\
cat network.yaml >> toolpost.yaml
chmod 600 deploy-key
toolpost trust
""",
        ),
    },
)
