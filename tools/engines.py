"""The six proof engines that the proof core replaces: their names and fragments are left alone until then. Empty this
list with them."""
import re

ENGINES = re.compile(r"(src|tests)/(cert/(test_)?(enclose|wide|pair)|depth/(test_)?walk|ticket/(test_)?bound|"
                     r"width/(test_)?(tube|move|patch|edit))")
