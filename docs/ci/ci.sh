#!/bin/sh
# Builds, proves and checks the images of the mesh in the working directory. Findings are printed as text, and written to
# reports/ as JUnit XML and Markdown. Exit status: that of the first step that is not clean, as fitout gives it.
#
#   FITOUT          the program (default: fitout)
#   FITOUT_CHECK    yes: check against the living registry too
set -eu
fitout="${FITOUT:-fitout}"

"$fitout" plan --deny warnings --report junit=reports/plan.xml --report markdown=reports/plan.md
"$fitout" build --locked --deny warnings --report junit=reports/build.xml --report markdown=reports/build.md
"$fitout" verify -C . --report junit=reports/verify.xml --report markdown=reports/verify.md dist/*.tar.gz
if [ "${FITOUT_CHECK:-}" = yes ]; then
    "$fitout" check -C . --report junit=reports/check.xml --report markdown=reports/check.md dist/*.tar.gz
else
    echo "not checked against the living registry: FITOUT_CHECK is not yes"
fi
