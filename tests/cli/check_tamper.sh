# Certificates with a changed field and files with changed bytes, through pare-check: no crash, and nothing false is
# confirmed. Some of the changes; long_check_tamper.sh has all.
. "$PARE_ROOT/tests/cli/check_zoo.inc"
. "$PARE_ROOT/tests/cli/check_tamper.inc"
certificates=
zoo_models
make_cert fold fold m
make_cert width_qk width g --method qk --qk-dim 2 --data a.npz
make_cert depth_new depth b --kind uniform --layers 0 --data h.npy
make_cert embed depth e_mean --kind uniform --layers 0 --data h.npy --dtype f16
pare length m --tokens 4 --oracle 2 --certify -q -o len.json >/dev/null
tamper ${STEP:-37} fold.cert.json width_qk.cert.json depth_new.cert.json embed.cert.json len.json.cert.json
damage ${STEP:-37} width_qk.cert.json g width_qk a.npz
damage ${STEP:-37} depth_new.cert.json b h.npy
damage ${STEP:-37} embed.cert.json embed
