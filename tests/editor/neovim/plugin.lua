-- Headless Neovim with the plugin: optimize, review the best version in a split, accept it there, undo by the message.
-- Prints one JSON object. Environment: WORK (folder), SERVER and STATS (commands, JSON lists), PLUGIN (folder).
local seen = {}
local work = vim.env.WORK

vim.opt.runtimepath:append(vim.env.PLUGIN)
vim.cmd('filetype on')
local accelopt = require('accelopt')
accelopt.setup({ cmd = vim.json.decode(vim.env.SERVER), root_dir = work, init_options = { trusted = true } })

local function wait(what, seconds, condition)
  if not vim.wait(seconds * 1000, condition, 50) then
    io.stdout:write(vim.json.encode({ error = 'did not see ' .. what, seen = seen }))
    io.stdout:flush()
    vim.cmd('cquit 1')
  end
end

local function text(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer or 0, 0, -1, false), '\n')
end

local function lens(pattern)
  for _, found in ipairs(vim.lsp.codelens.get(vim.fn.bufnr(work .. '/nki_silu.py'))) do
    local title = found.command and found.command.title or ''
    if title:find(pattern) then return title end
  end
end

local function pairs_in_memory(number)
  return function()
    local told, stats = pcall(vim.json.decode, vim.system(vim.json.decode(vim.env.STATS)):wait().stdout)
    return told and stats.pairs == number
  end
end

local undo
vim.ui.select = function(items, options, on_choice)
  if options.kind ~= 'lsp_message' then return on_choice(items[1], 1) end
  for _, item in ipairs(items) do
    if item.title == 'Undo' then undo = function() on_choice(item) end end
  end
end

vim.cmd.edit(work .. '/nki_silu.py')
local file = vim.api.nvim_get_current_buf()
wait('the profile', 90, function() return accelopt.status():find('Profiling') ~= nil end)
wait('the end of the profile', 240, function() return accelopt.status() == 'AccelOpt' end)
vim.api.nvim_exec_autocmds('CursorHold', { buffer = file })
wait('a lens with a time', 60, function() return lens('est%.') ~= nil end)
vim.api.nvim_win_set_cursor(0, { vim.fn.search('^def silu'), 5 })
vim.cmd('AccelOptOptimize')
wait('the search in the status', 60, function()
  seen.searching = accelopt.status()
  return seen.searching:find('silu') ~= nil
end)
wait('the end of the search', 240, function() return accelopt.status() == 'AccelOpt' end)

local before = text(file)
vim.cmd('AccelOptReview')
wait('the diff', 60, function() return #vim.api.nvim_list_wins() == 2 end)
seen.winbar = vim.wo.winbar
seen.diff = vim.wo.diff
local version = text()
assert(version ~= before)
vim.api.nvim_feedkeys('ga', 'x', false)
wait('the accepted text', 60, function() return text(file) == version end)
seen.windows = #vim.api.nvim_list_wins()
wait('the pair in the memory', 60, pairs_in_memory(1))
wait('the message with Undo', 60, function() return undo ~= nil end)
undo()
wait('the old text', 60, function() return text(file) == before end)
wait('a memory without the pair', 60, pairs_in_memory(0))
seen.undone = true
vim.lsp.get_clients({ name = 'accelopt' })[1]:stop()
io.stdout:write(vim.json.encode(seen))
vim.cmd('qall!')
