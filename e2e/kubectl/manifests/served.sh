# The group and version in which the server prefers a resource: served.sh RESOURCE GROUP.
kubectl api-resources --no-headers --api-group="$2" | awk -v name="$1" '$1 == name { print $(NF - 2) }'
