function GetDependencies(desiredObj)
  return {
end
