"""How much one call of the filesystem tools may read, write and return."""

from dataclasses import dataclass

from interpose.contracts.settings import a_count, an_age, each_checked


@dataclass(frozen=True, slots=True)
class FilesystemLimits:
    """Bounds of one call. Raises ConfigError naming the field for what none of them can be.

    Attributes:
        read_bytes: of text returned by one read; larger files are read in slices of lines.
        scan_bytes: of a file that a slice is looked for in, or that a search reads.
        write_bytes: of a file after it was written.
        results: entries or lines that a listing or a search returns.
        entries: files and folders that a listing or a search looks at.
        depth: folders below the starting folder.
        search_s: seconds that a search may take.
        line_chars: characters shown of a line that a search found.
    """

    read_bytes: int = 262_144
    scan_bytes: int = 67_108_864
    write_bytes: int = 4_194_304
    results: int = 500
    entries: int = 100_000
    depth: int = 50
    search_s: float = 10.0
    line_chars: int = 300

    def __post_init__(self) -> None:
        counts = ("read_bytes", "scan_bytes", "write_bytes", "results", "entries", "depth", "line_chars")
        each_checked(self, {**dict.fromkeys(counts, a_count), "search_s": an_age})
