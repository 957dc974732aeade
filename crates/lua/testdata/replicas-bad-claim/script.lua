function GetReplicas(desiredObj)
  return 1, { nodeClaim = { tolerations = desiredObj.spec.secret } }
end
