function AggregateStatus(desiredObj, statusItems)
  return statusItems
end
