# The study of length: every executed count is the planned one; robust modes give numbers everywhere.
pare repro length -q -o r > text; echo "exit $?"
sed -n '/^calls/,/^$/p' text
grep 'native\|zero reference' text | grep -c fails
ls r
