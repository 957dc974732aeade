function GetDependencies(desiredObj)
  return { [2] = { apiVersion = 'v1', kind = 'Secret', name = 'a' } }
end
