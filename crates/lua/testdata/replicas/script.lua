local kube = require("kube")

function GetReplicas(desiredObj)
  local replica = desiredObj.spec.replicas
  local requirement = kube.accuratePodRequirements(desiredObj.spec.template)
  return replica, requirement
end
