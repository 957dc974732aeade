function GetReplicas(desiredObj)
  return desiredObj.spec.replicas
end
