function GetComponents(desiredObj)
  return { { name = "a", replicas = 1 }, { replicas = 2 } }
end
