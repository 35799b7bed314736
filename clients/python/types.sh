#!/bin/sh
# Writes sakshi_client/models.py, the bodies' types. They cost nothing when a program runs.
set -eu
cd "$(dirname "$0")"
datamodel-codegen --input ../openapi.json --input-file-type openapi --output-model-type typing.TypedDict --target-python-version 3.11 \
  --use-standard-collections --use-union-operator --disable-timestamp --formatters builtin --output sakshi_client/models.py
