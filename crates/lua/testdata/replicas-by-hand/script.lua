local kube = require("kube")

function GetReplicas(desiredObj)
  local requirement = { nodeClaim = {}, resourceRequest = {} }
  local cpu, memory = nil, nil
  for i = 1, table.getn(desiredObj.spec.template.spec.containers) do
    local requests = desiredObj.spec.template.spec.containers[i].resources.requests
    cpu = kube.resourceAdd(cpu, requests.cpu)
    memory = kube.resourceAdd(memory, requests.memory)
  end
  requirement.resourceRequest.cpu = cpu
  requirement.resourceRequest.memory = memory
  requirement.resourceRequest["example.com/gpu"] = 2
  requirement.nodeClaim.nodeSelector = desiredObj.spec.template.spec.nodeSelector
  requirement.priorityClassName = "high"
  requirement.namespace = "elsewhere"
  -- Cut off as a whole number: 3 of 7.
  return desiredObj.spec.replicas + 1 / 2, requirement
end
