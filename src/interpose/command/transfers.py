"""Which files the programs that talk to other machines and containers read and write.

Knows: curl, wget, rsync, scp, ssh, docker, openssl. Does not know: files on the other side.
"""

from collections.abc import Sequence
from itertools import pairwise

from interpose.command.filters import excluded_names
from interpose.command.options import Options, parse_options, plain
from interpose.command.paths import absolute_path
from interpose.command.reading import Word
from interpose.command.uses import Use, inside, is_remote
from interpose.command.wrappers import SSH_OPTIONS

_OPENSSL_READS = frozenset(
    {"-in", "-inkey", "-key", "-cert", "-CAfile", "-CA", "-CAkey", "-config", "-signkey", "-recip", "-certfile"}
)
_CURL = Options.of(
    "oTdFKHXubAecrwmECDPQYyzhUtx",
    "output upload-file data data-binary data-raw data-urlencode form config header request user cookie cookie-jar "
    "user-agent url cert key cacert max-time connect-timeout retry proxy referer range write-out output-dir json",
)


def curl_files(words: Sequence[Word]) -> list[Use]:
    """The files of a curl."""
    parsed = parse_options(words, _CURL)
    uses = [Use(word, "write") for word in parsed.values("-o", "--output", "-c", "--cookie-jar", "-D")]
    uses += [Use(word, "read") for word in parsed.values("-T", "--upload-file", "-K", "--config")]
    folder = (parsed.values("--output-dir") or plain(["."]))[-1]
    if parsed.has("-O", "--remote-name", "--remote-name-all", "-J"):
        urls = [*parsed.operands, *parsed.values("--url")]
        uses += [Use(inside(folder, _url_name(word)), "write") for word in urls]
    sent = parsed.values("-d", "--data", "--data-binary", "--data-urlencode", "-F", "--form", "--json")
    for word in sent:
        at = max(word.text.find("@"), word.text.find("<"))
        if at >= 0:
            uses.append(Use(Word(word.text[at + 1 :].split(";", 1)[0], word.dynamic), "read"))
    uses += [Use(word, "read") for word in parsed.values("--cert", "-E", "--key", "--cacert", "-b", "--cookie")]
    urls = [*parsed.operands, *parsed.values("--url")]
    return [*uses, *(Use(_local(word), "read") for word in urls if _is_file_url(word))]


def _url_name(word: Word) -> Word:
    path = word.text.split("?", 1)[0].split("#", 1)[0]
    return Word(path.rsplit("/", 1)[-1] or "index.html", word.dynamic)


_WGET = Options.of(
    "oOaiPUeBtTwQAR",
    "output-file output-document append-output input-file directory-prefix user-agent execute header post-file "
    "post-data body-file tries timeout",
)


def wget_files(words: Sequence[Word]) -> list[Use]:
    """The files of a wget."""
    parsed = parse_options(words, _WGET)
    named = parsed.values("-O", "--output-document")
    uses = [Use(word, "write") for word in (*named, *parsed.values("-o", "--output-file", "-a", "--append-output"))]
    uses += [Use(word, "read") for word in parsed.values("-i", "--input-file", "--post-file", "--body-file")]
    if not named:
        folder = (parsed.values("-P", "--directory-prefix") or plain(["."]))[-1]
        uses += [Use(inside(folder, _url_name(word)), "write") for word in parsed.operands]
    return uses


def copied_files(words: Sequence[Word]) -> list[Use]:
    """The files of an rsync or scp."""
    parsed = parse_options(words, Options.of("cDFiJloPSXeBfTM", "rsh exclude include filter exclude-from backup-dir"))
    if len(parsed.operands) < 2:
        return []
    *sources, target = parsed.operands
    names = None if parsed.has("--include", "--filter", "-f") else excluded_names(parsed)
    uses = [Use(word, "read", "tree", names) for word in sources if not is_remote(word)]
    uses += [Use(word, "read") for word in parsed.values("-i", "-F", "--exclude-from")]
    if parsed.has("--remove-source-files"):
        uses += [Use(word, "remove", "tree") for word in sources if not is_remote(word)]
    if is_remote(target):
        return uses
    if parsed.has("--delete"):
        uses.append(Use(target, "remove", "tree"))
    written = [target, *(inside(target, word) for word in sources)]
    return [*uses, *(Use(word, "write", "tree", names) for word in written)]


def ssh_files(words: Sequence[Word]) -> list[Use]:
    """The files that an ssh is given: keys and settings."""
    parsed = parse_options(words, SSH_OPTIONS, permute=False)
    return [Use(word, "read") for word in parsed.values("-i", "-F")]


def kubectl_files(words: Sequence[Word]) -> list[Use]:
    """The files of which a kubectl makes secrets and settings: `--from-file=[KEY=]FILE`, `--from-env-file=FILE`."""
    parsed = parse_options(words, Options.of("", "from-file from-env-file"))
    named = [word for word in parsed.values("--from-file") if not word.dynamic]
    dynamic = [word for word in parsed.values("--from-file") if word.dynamic]
    files = [Word(word.text.rpartition("=")[2]) for word in named]
    return [Use(word, "read") for word in (*files, *dynamic, *parsed.values("--from-env-file"))]


def settings_files(words: Sequence[Word]) -> list[Use]:
    """The files of which node and its like read the environment: `--env-file=FILE`."""
    parsed = parse_options(words, Options.of("r", "env-file env-file-if-exists"), permute=False)
    return [Use(word, "read") for word in parsed.values("--env-file", "--env-file-if-exists")]


def docker_files(words: Sequence[Word]) -> list[Use]:
    """The files that docker and its like take settings from, or copy; what a container does is not ours."""
    parsed = parse_options(words, Options.of("", "env-file"))
    uses = [Use(word, "read") for word in parsed.values("--env-file")]
    operands = parsed.operands
    if not operands or operands[0].text not in ("cp", "container") or len(operands) < 3:
        return uses
    *sources, target = operands[1:]
    uses += [Use(word, "read", "tree") for word in sources if ":" not in word.text]
    return uses if ":" in target.text else [*uses, Use(target, "write", "tree")]


def openssl_files(words: Sequence[Word]) -> list[Use]:
    """The files of an openssl, whose options of one dash are whole words."""
    uses: list[Use] = []
    for option, value in pairwise(words):
        if option.text in _OPENSSL_READS:
            uses.append(Use(value, "read"))
        if option.text in ("-out", "-keyout", "-writerand"):
            uses.append(Use(value, "write"))
        if option.text in ("-passin", "-passout", "-pass") and value.text.startswith("file:"):
            uses.append(Use(Word(value.text.removeprefix("file:"), value.dynamic), "read"))
    return uses


def _is_file_url(word: Word) -> bool:
    return word.text.lower().startswith("file:")


def _local(word: Word) -> Word:
    """The path of a file URL."""
    if word.dynamic:
        return word
    path = absolute_path("file:" + word.text[len("file:") :], cwd="/")
    return Word(path)
