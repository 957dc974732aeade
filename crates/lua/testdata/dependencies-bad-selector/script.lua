function GetDependencies(desiredObj)
  return { { apiVersion = 'v1', kind = 'Pod', labelSelector = { matchExpressions = { { key = 'hunter2', operator = 'Near' } } } } }
end
