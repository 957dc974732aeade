function GetDependencies(desiredObj)
  return { { apiVersion = 'v1', name = 'a' } }
end
