function ReviseReplica(desiredObj, desiredReplica)
  desiredObj.metadata.name = desiredObj.metadata.name .. "-" .. desiredReplica
  return desiredObj
end
