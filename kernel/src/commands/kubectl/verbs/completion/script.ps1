# Completion of kubectl in PowerShell: `kubectl completion powershell | Out-String | Invoke-Expression`. It asks
# kubectl __complete what can follow.
Register-ArgumentCompleter -Native -CommandName kubectl -ScriptBlock {
    param($typed, $command, $cursor)
    $words = @($command.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursor } | ForEach-Object { "$_" })
    $asked = @($words | Select-Object -Skip 1)
    # An empty argument has to be quoted to arrive.
    if ($typed -eq '') { $asked += '""' }
    $answer = @(Invoke-Expression "$($words[0]) __complete $($asked -join ' ')" 2>$null)
    if ($answer.Count -lt 1) { return }
    $directive = [int]$answer[-1].TrimStart(':')
    # Behind --flag= it is the value that is completed.
    $before = if ($typed -match '^-[^=]*=') { $Matches[0] } else { '' }
    # Without a result PowerShell completes files.
    if ($directive -band 8) { return }
    foreach ($told in @($answer | Select-Object -SkipLast 1)) {
        $text, $meaning = $told -split "`t", 2
        if (-not $text) { continue }
        $space = if ($directive -band 2) { '' } else { ' ' }
        $shown = if ($meaning) { $meaning } else { $text }
        [System.Management.Automation.CompletionResult]::new("$before$text$space", $text, 'ParameterValue', $shown)
    }
    if ($answer.Count -eq 1 -and ($directive -band 4)) { '' }
}
