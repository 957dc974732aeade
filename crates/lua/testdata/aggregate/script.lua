function AggregateStatus(desiredObj, statusItems)
  if statusItems == nil then
    return desiredObj
  end
  local status = { replicas = 0, clusters = {}, conditions = {} }
  for i = 1, #statusItems do
    local item = statusItems[i]
    if item.copy ~= nil then
      error("the record of the copy is not for scripts")
    end
    if item.status ~= nil then
      status.replicas = status.replicas + (item.status.replicas or 0)
      if status.latest == nil or status.latest < item.status.time then
        status.latest = item.status.time
      end
      table.insert(status.clusters, string.format("%s=%d", item.clusterName, item.status.replicas))
    end
  end
  status.summary = table.concat(status.clusters, ",")
  status.observedGeneration = desiredObj.metadata.generation
  desiredObj.status = status
  return desiredObj
end
