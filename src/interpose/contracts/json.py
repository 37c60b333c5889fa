"""The one alias for values that come from or go to JSON."""

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""None, bool, int, float, str, a list of Json, or a dict of str to Json."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object that the holder must not change."""
