function GetDependencies(desiredObj)
  local dependentSas = {}
  local refs = {}
  local idx = 1
  if desiredObj.spec.template.spec.serviceAccountName ~= nil and desiredObj.spec.template.spec.serviceAccountName ~= '' then
    dependentSas[desiredObj.spec.template.spec.serviceAccountName] = true
  end
  for key, value in pairs(dependentSas) do
    local dependObj = {}
    dependObj.apiVersion = 'v1'
    dependObj.kind = 'ServiceAccount'
    dependObj.name = key
    dependObj.namespace = desiredObj.metadata.namespace
    refs[idx] = dependObj
    idx = idx + 1
  end
  refs[idx] = {
    apiVersion = 'discovery.k8s.io/v1', kind = 'EndpointSlice', namespace = desiredObj.metadata.namespace,
    labelSelector = { matchLabels = { app = desiredObj.metadata.labels.app } },
  }
  return refs
end
