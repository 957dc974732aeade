# Writes a status, as a controller would: status.sh PATH STATUS.
kubectl get --raw "$1" | sed 's/,"status":{.*/}/; s/}$//' > "$TMPDIR/status.json"
printf ',"status":%s}' "$2" >> "$TMPDIR/status.json"
kubectl replace --raw "$1/status" -f "$TMPDIR/status.json" > /dev/null && echo written
