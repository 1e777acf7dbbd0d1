"""The command that the page declares, called."""

from stage import BlockStage, PageStage

STAGE = PageStage(blocks={"commands:\n  count_words": BlockStage(saves="toolpost.yaml")})
