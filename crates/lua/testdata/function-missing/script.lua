function getDependencies(desiredObj)
  return {}
end
