function InterpretHealth(observedObj)
  return observedObj.status.readyReplicas == observedObj.spec.replicas
end
