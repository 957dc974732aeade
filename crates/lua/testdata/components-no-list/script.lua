function GetComponents(desiredObj)
  return { worker = { replicas = 2 } }
end
