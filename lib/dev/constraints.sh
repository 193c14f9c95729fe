#!/usr/bin/env bash
# Rewrite lib/constraints.txt: the versions that a fresh environment with all extras but quarto resolves to today.
# Usage: lib/dev/constraints.sh [NEW_ENVIRONMENT_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-$(mktemp -d)/venv}
"${PYTHON:-python3}" -m venv "$folder"
if [ -n "${TORCH_INDEX:-}" ]; then "$folder/bin/pip" install -q --index-url "$TORCH_INDEX" torch==2.13.0; fi
"$folder/bin/pip" install -q -e '.[mini,dev]'
{
  echo "# Every version of a tested environment (lib/dev/constraints.sh). Used by the Makefile as pip's constraints."
  "$folder/bin/pip" freeze --exclude-editable | sed -E 's/\+cpu$//; /^nvidia-|^triton|^cuda-/d' | sort -f
} > lib/constraints.txt
