"""The page's own module, and the hook beside it."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

STAGE = PageStage(
    places={
        MAIN: PlaceStage(
            files={"~/.config/toolpost/toolpost.yaml": "amplifier: { core: stand_in, install: offline }\n"},
        ),
    },
    blocks={
        "# plan.yaml": BlockStage(saves="plan.yaml"),
        "# greet/": BlockStage(saves="greet/amplifier_module_tool_greet/__init__.py"),
        "from amplifier_core import HookResult": BlockStage(saves="audit/amplifier_module_hooks_audit/__init__.py"),
        "toolpost call --mount-plan plan.yaml --allow 'tool-greet.*' greet name=secret": BlockStage(
            setup="printf 'hooks:\\n  - { module: hooks-audit, source: ./audit }\\n' >> plan.yaml",
        ),
    },
)
