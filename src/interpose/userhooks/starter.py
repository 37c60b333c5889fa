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
  # Deleting a folder and all that is in it is for a person.
  - id: no-recursive-delete
    on: before_tool
    kind: effect
    command:
      - rm -r|-R|--recursive
      - find -delete
    effect:
      kind: block_tool
      reason: >-
        Recursive deletes are not allowed in this project. Remove the files one by one,
        or ask the person to do it.

  # Secrets are not read, written or removed, by whatever tool. The last pattern that matches decides.
  # A command whose files cannot be told (cat "$FILE") is asked about, and refused where nobody can be asked;
  # `on_unknown: pass` would let it through.
  - id: protect-secrets
    on: before_tool
    kind: effect
    path:
      - .env
      - .env.*
      - "!.env.example"
      - "*.pem"
      - "*.key"
      - id_rsa
      - id_ed25519
      - ~/.ssh
      - "!*.pub"
      - "!site-packages"      # installed packages hold public certificates
      - "!node_modules"
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
