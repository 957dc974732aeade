function ReviseReplica(desiredObj, desiredReplica)
  desiredObj.spec.replicas = desiredReplica
end
