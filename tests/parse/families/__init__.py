"""What families write, by hand, by the kind of spelling of their calls; a dialect each, and turns in it."""

from tests.parse.families.family import TOOLS, Family, Said, Turn, names, reading, written
from tests.parse.families.named import NAMED
from tests.parse.families.objects import OBJECTS
from tests.parse.families.tagged import TAGGED
from tests.parse.families.values import VALUES

__all__ = ["FAMILIES", "TOOLS", "TURNS", "Family", "Said", "Turn", "names", "reading", "written"]

FAMILIES = (*OBJECTS, *NAMED, *TAGGED, *VALUES)

TURNS = [(family, turn) for family in FAMILIES for turn in family.turns]
