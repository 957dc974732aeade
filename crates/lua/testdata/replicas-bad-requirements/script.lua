function GetReplicas(desiredObj)
  return 1, { resourceRequest = { cpu = desiredObj.spec.cpu } }
end
