# The page of the papers as a reader sees it, at 1400 and 390 pixels, light and dark.
command -v chromium >/dev/null || { echo "SKIP needs chromium"; exit 77; }
pare repro all --only tables,calls,errata,orders --side 8 --large 1 --runs 2 --epochs 2 -q -o out >/dev/null
python3 $PARE_ROOT/tests/report/browser.py out/report.html . plots
