# The report as a reader sees it: every plot drawn, at 1280 and 390 pixels, in light and in dark.
command -v chromium >/dev/null || { echo "SKIP needs chromium"; exit 77; }
pare data minesweeper --side 16 --seed 1 -q -o board.npz >/dev/null
model=$PARE_ROOT/models/minesweeper.safetensors
pare width $model --data board.npz --dim 8 -q -o small.st >/dev/null
pare probe $model --data board.npz --dims 8 -q --json >probe.json
pare train --kind graph --data board.npz --dim 8 --layers 1 --epochs 10 -q -o gt.st --log gt.csv >/dev/null
pare report small.st.cert.json probe.json gt.csv -q -o page.html
python3 $PARE_ROOT/tests/report/browser.py page.html .
# A page whose plots are gone is seen to be so.
sed 's/<path[^>]*>//; s/<circle[^>]*>.*<.circle>//' page.html >blank.html
python3 $PARE_ROOT/tests/report/browser.py blank.html . plots bars heat once | head -n 1
