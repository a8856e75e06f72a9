#!/bin/sh
# Sets up what `make demo` and `make test` need, or says what is missing (exit 3).
# Usage: setup.sh demo|dev optional|required|none
# Where all is in place this only compares stamps; otherwise setup.py does the work,
# run by the first Python >= 3.11. PYTHON=... names the only one to try.
set -u
cd "$(dirname "$0")/.." || exit 3

if [ -z "${PYTHON:-}" ] && [ -x .venv/bin/python ] &&
    .venv/bin/python -S scripts/setup.py --ready "$@" 2>/dev/null; then
    exit 0
fi

found=none
for name in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
    command -v "$name" >/dev/null 2>&1 || continue
    base=$("$name" -c 'import sys
print(getattr(sys, "_base_executable", None) or sys.executable)
sys.exit(sys.version_info < (3, 11))' 2>/dev/null) && exec "$base" scripts/setup.py "$@"
    version=$("$name" -c 'import sys
print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) && found=$version
done

echo "oscc needs Python 3.11 or newer, but found $found. Install one," \
    "or run \`make ${OSCC_GOAL:-demo} PYTHON=/path/to/python3.11\`." >&2
exit 3
