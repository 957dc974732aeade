function GetDependencies(desiredObj)
  return { { apiVersion = 'v1', kind = 'Secret', name = 'a' }, { apiVersion = 'v1', kind = 'Secret', namespace = 'hunter2' } }
end
