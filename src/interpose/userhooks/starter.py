"""The hook file that a project starts with.

Knows: three rules worth having. Does not know: where it is written.
"""

from typing import Final

STARTER: Final = """\
# yaml-language-server: $schema=hooks.schema.json
#
# What agents may do in this project, and what they are told. A change counts at once.
# The first line lets editors check this file and complete its words; `interpose hooks check` does the same.
#
# A hook says when it is asked (on), what a call must be for it to speak (tools, command, path), and what then
# happens. One rule means the same in every agent. To try one out without consequences give it `mode: observe`:
# the journal then says what it would have done.

hooks:
  # Deleting a folder and all that is in it is for a person. A command that cannot be read (eval "$X") is not let
  # through either: the person is asked, and where nobody can be asked it is refused.
  - id: no-recursive-delete
    on: before_tool
    kind: effect
    command:
      - rm -r|-R|--recursive
      - find -delete
      - rimraf
    effect:
      kind: block_tool
      reason: >-
        Recursive deletes are not allowed in this project. Remove the files one by one,
        or ask the person to do it.

  # Secrets are not read, written or removed, by whatever tool. The last pattern that matches decides.
  # Of some commands nobody can tell beforehand which files they use (cat "$FILE", git ls-files | xargs wc -l).
  # `on_unknown: pass` lets those run and writes in the journal that this was unknown. To be strict take the line
  # out: then the person is asked, and where nobody can be asked the command is refused.
  - id: protect-secrets
    on: before_tool
    kind: effect
    on_unknown: pass
    path:
      - .env
      - .env.*
      - .envrc
      - "!.env.example"
      - "!.env.sample"
      - "!.env.template"
      - "*.pem"
      - "*.key"
      - "*.p12"
      - "*.pfx"
      - id_rsa
      - id_ecdsa
      - id_ed25519
      - credentials.json
      - ~/.ssh
      - ~/.aws/credentials
      - ~/.netrc
      - "!*.pub"
      - "!~/.ssh/known_hosts"
      - "!**/node_modules/**"     # installed packages hold public certificates
      - "!**/.venv/**"
      - "!**/site-packages/**"
    effect:
      kind: block_tool
      reason: This file holds secrets. Use .env.example to see which settings there are.

  # Said with every message of yours, before the model sees it.
  - id: remind-tests
    on: turn_start
    kind: prompt
    message: When you have changed code, run the tests before you say that you are done.
"""
"""The text of `.interpose/hooks.yaml`; its schema stands beside it as `hooks.schema.json`."""
