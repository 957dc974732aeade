function ReflectStatus(observedObj)
  if observedObj.status == nil then
    return nil
  end
  local status = {}
  status.replicas = observedObj.status.replicas
  status.ratio = observedObj.status.replicas / 2
  status.share = observedObj.status.replicas / 8
  status.loadBalancer = observedObj.status.loadBalancer
  status.conditions = observedObj.status.conditions
  return status
end
