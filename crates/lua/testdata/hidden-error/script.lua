function GetDependencies(desiredObj)
  error("bad label " .. desiredObj.metadata.labels.app)
end
