function GetReplicas(desiredObj)
  if desiredObj.spec.suspend then
    return 0
  end
  return 1, nil
end
